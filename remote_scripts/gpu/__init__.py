"""GPUs: by NVML and GPM, by nvidia-smi, by a DCGM exporter that already runs, and who holds their memory."""
