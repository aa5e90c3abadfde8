/* MIG and GPM of the stub: the second half of stub.c, which includes it. */

int nvmlDeviceGetMigMode(device_t device, unsigned *current, unsigned *pending)
{
    ENTER(device);
    int code = give_unsigned(device, "mig_mode", current);
    *pending = *current;
    return code;
}

int nvmlDeviceGetMaxMigDeviceCount(device_t device, unsigned *into)
{
    unsigned mode;
    ENTER(device);
    if (give_unsigned(device, "mig_mode", &mode) != SUCCESS) {
        *into = 0;
        return NOT_SUPPORTED;
    }
    *into = 7;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *into)
{
    char uuid[96];
    ENTER(device);
    if (device->mig >= 0 || index >= MOST_MIGS)
        return INVALID_ARGUMENT;
    *into = device_at(device->gpu, (int)index);
    return give_text(*into, "uuid", uuid, sizeof uuid) == SUCCESS ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceIsMigDeviceHandle(device_t device, unsigned *into) { ENTER(device); *into = device->mig >= 0; return SUCCESS; }
int nvmlDeviceGetGpuInstanceId(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "gpu_instance", into); }
int nvmlDeviceGetComputeInstanceId(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "compute_instance", into); }

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t device, device_t *into)
{
    ENTER(device);
    *into = device_at(device->gpu, -1);
    return device->mig >= 0 ? SUCCESS : INVALID_ARGUMENT;
}

#if DRIVER > 470
struct gpm_support { unsigned version, supported; };
struct gpm_sample { device_t device; double taken_ms; };
struct gpm_metric { unsigned id; int code; double value; const char *short_name, *long_name, *unit; };
struct gpm_request { unsigned version, count; struct gpm_sample *older, *newer; struct gpm_metric metrics[]; };

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int gpm_supported(device_t device)
{
    double supported = 0;
    return scenario_number(device_at(device->gpu, -1)->scope, "gpm", &supported) && supported != 0;
}

int nvmlGpmQueryDeviceSupport(device_t device, struct gpm_support *into)
{
    ENTER(device);
    if (into->version != 1)
        return VERSION_MISMATCH;
    into->supported = (unsigned)gpm_supported(device);
    return SUCCESS;
}

int nvmlGpmSampleAlloc(struct gpm_sample **into)
{
    ENTER(NULL);
    *into = calloc(1, sizeof **into);
    return *into != NULL ? SUCCESS : 20;
}

int nvmlGpmSampleFree(struct gpm_sample *sample)
{
    ENTER(NULL);
    free(sample);
    return SUCCESS;
}

int nvmlGpmSampleGet(device_t device, struct gpm_sample *sample)
{
    ENTER(device);
    if (!gpm_supported(device))
        return NOT_SUPPORTED;
    sample->device = device;
    sample->taken_ms = now_ms();
    return SUCCESS;
}

int nvmlGpmMigSampleGet(device_t device, unsigned instance, struct gpm_sample *sample)
{
    ENTER(device);
    for (int mig = 0; mig < MOST_MIGS; mig++) {
        unsigned other;
        if (give_unsigned(device_at(device->gpu, mig), "gpu_instance", &other) == SUCCESS && other == instance)
            return nvmlGpmSampleGet(device_at(device->gpu, mig), sample);
    }
    return NOT_FOUND;
}

/* Samples less than 100 ms apart give NaN, and samples in the wrong order or of two devices are refused: what a
 * sampler must not do. The scenario's gpm.<id> may be nan too; a metric it does not name is not supported. */
int nvmlGpmMetricsGet(struct gpm_request *request)
{
    ENTER(NULL);
    if (request->version != 1)
        return VERSION_MISMATCH;
    if (request->older == NULL || request->newer == NULL || request->older->device == NULL ||
        request->older->device != request->newer->device || request->newer->taken_ms < request->older->taken_ms)
        return INVALID_ARGUMENT;
    device_t device = request->newer->device;
    int failed = enter(__func__, device);
    int too_close = request->newer->taken_ms - request->older->taken_ms < GPM_INTERVAL_MS;
    for (unsigned at = 0; at < request->count && failed == SUCCESS; at++) {
        char name[32];
        struct gpm_metric *metric = &request->metrics[at];
        snprintf(name, sizeof name, "gpm.%u", metric->id);
        metric->code = give_number(device, name, &metric->value);
        if (metric->code == SUCCESS && too_close)
            metric->value = NAN;
        metric->short_name = metric->long_name = metric->unit = NULL;
    }
    return failed;
}
#endif
