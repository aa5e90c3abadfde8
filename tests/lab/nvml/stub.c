/* libnvidia-ml.so.1 without a GPU: what the real pynvml calls, answered from the scenario (scenario.h).
 *
 * Signatures, struct layouts and codes are those of nvml.h 13 and of nvidia-ml-py 13.615. What a scenario does not
 * name is NVML_ERROR_NOT_SUPPORTED. Any call can be made to fail or to take its time:
 *
 *     error.nvmlInitWithFlags = 18      gpu0.error.nvmlDeviceGetPowerUsage = 4      gpu1.error = 15
 *     delay_ms.nvmlDeviceGetUtilizationRates = 300                                  gpu0.delay_ms = 5
 *
 * -DDRIVER=470 leaves out what that branch does not have (GPM, memory v2, process v3, event reasons); -DDRIVER=535
 * has that branch's layout of the process struct.
 */
#define _GNU_SOURCE
#include "scenario.h"

#include <dlfcn.h>
#include <math.h>
#include <unistd.h>

#ifndef DRIVER
#define DRIVER 580
#endif

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15, RESET_REQUIRED = 16, VERSION_MISMATCH = 25
};
enum { MOST_GPUS = 64, MOST_MIGS = 8, GPM_INTERVAL_MS = 100 };

typedef struct device { int gpu, mig; char scope[32]; } *device_t;

static struct device devices[MOST_GPUS][MOST_MIGS + 1];
static int users;

__attribute__((constructor)) static void locate(void)
{
    Dl_info self;
    if (dladdr((void *)locate, &self) != 0)
        scenario_locate(self.dli_fname);
}

static device_t device_at(int gpu, int mig)
{
    device_t device = &devices[gpu][mig + 1];
    device->gpu = gpu;
    device->mig = mig;
    if (mig < 0)
        snprintf(device->scope, sizeof device->scope, "gpu%d.", gpu);
    else
        snprintf(device->scope, sizeof device->scope, "gpu%d.mig%d.", gpu, mig);
    return device;
}

/* What every call begins with: its own wait and failure, the device's, or that nobody has called init. */
static int enter(const char *function, device_t device)
{
    char key[128];
    double wait_ms = 0, code = 0;
    snprintf(key, sizeof key, "delay_ms.%s", function);
    if (scenario_number("", key, &wait_ms) ||
        (device != NULL && (scenario_number(device->scope, key, &wait_ms) ||
                            scenario_number(device->scope, "delay_ms", &wait_ms))))
        usleep((useconds_t)(wait_ms * 1000));
    snprintf(key, sizeof key, "error.%s", function);
    if (scenario_number("", key, &code) && code != 0)
        return (int)code;
    if (users == 0 && strncmp(function, "nvmlInit", 8) != 0)
        return UNINITIALIZED;
    if (device != NULL && ((scenario_number(device->scope, key, &code) && code != 0) ||
                           (scenario_number(device->scope, "error", &code) && code != 0)))
        return (int)code;
    return SUCCESS;
}

#define ENTER(device)                                   \
    do {                                                \
        int entered = enter(__func__, device);          \
        if (entered != SUCCESS)                         \
            return entered;                             \
    } while (0)

static int give_number(device_t device, const char *name, double *into)
{
    return scenario_number(device != NULL ? device->scope : "", name, into) ? SUCCESS : NOT_SUPPORTED;
}

static int give_unsigned(device_t device, const char *name, unsigned *into)
{
    double value;
    int code = give_number(device, name, &value);
    if (code == SUCCESS)
        *into = (unsigned)(long long)value;
    return code;
}

static int give_long(device_t device, const char *name, unsigned long long *into)
{
    double value;
    int code = give_number(device, name, &value);
    if (code == SUCCESS)
        *into = (unsigned long long)value;
    return code;
}

/* Cut at the buffer's end and then without a NUL, as a broken driver would. */
static int give_text(device_t device, const char *name, char *into, unsigned size)
{
    int length = scenario_bytes(device != NULL ? device->scope : "", name, into, (int)size);
    if (length >= 0 && length < (int)size)
        into[length] = '\0';
    return length >= 0 ? SUCCESS : NOT_SUPPORTED;
}

/* ---- the library ---- */

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    ENTER(NULL);
    users++;
    return SUCCESS;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void)
{
    ENTER(NULL);
    users--;
    return SUCCESS;
}

const char *nvmlErrorString(int code)
{
    switch (code) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case GPU_IS_LOST: return "GPU is lost";
    case RESET_REQUIRED: return "GPU requires reset";
    case 18: return "Driver/library version mismatch";
    case VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *into, unsigned size) { ENTER(NULL); return give_text(NULL, "driver_version", into, size); }
int nvmlSystemGetNVMLVersion(char *into, unsigned size) { ENTER(NULL); return give_text(NULL, "nvml_version", into, size); }
int nvmlSystemGetCudaDriverVersion(int *into) { ENTER(NULL); return give_unsigned(NULL, "cuda_version", (unsigned *)into); }
int nvmlSystemGetCudaDriverVersion_v2(int *into) { return nvmlSystemGetCudaDriverVersion(into); }

int nvmlSystemGetProcessName(unsigned pid, char *into, unsigned size)
{
    char path[64];
    ENTER(NULL);
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t length = readlink(path, into, size - 1);
    if (length < 0)
        return NOT_FOUND;
    into[length] = '\0';
    return SUCCESS;
}

/* ---- devices ---- */

static unsigned gpu_count(void)
{
    double count = 0;
    scenario_number("", "count", &count);
    return count < 0 ? 0 : count > MOST_GPUS ? MOST_GPUS : (unsigned)count;
}

int nvmlDeviceGetCount_v2(unsigned *into)
{
    ENTER(NULL);
    *into = gpu_count();
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *into)
{
    ENTER(NULL);
    if (index >= gpu_count())
        return INVALID_ARGUMENT;
    *into = device_at((int)index, -1);
    return enter(__func__, *into);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device_t *into)
{
    char text[96];
    ENTER(NULL);
    for (int gpu = 0; gpu < (int)gpu_count(); gpu++) {
        for (int mig = -1; mig < MOST_MIGS; mig++) {
            device_t device = device_at(gpu, mig);
            if (give_text(device, "uuid", text, sizeof text) == SUCCESS && strcmp(text, uuid) == 0) {
                *into = device;
                return enter(__func__, device);
            }
        }
    }
    return NOT_FOUND;
}

int nvmlDeviceGetIndex(device_t device, unsigned *into) { ENTER(device); *into = (unsigned)device->gpu; return SUCCESS; }
int nvmlDeviceGetName(device_t device, char *into, unsigned size) { ENTER(device); return give_text(device, "name", into, size); }
int nvmlDeviceGetUUID(device_t device, char *into, unsigned size) { ENTER(device); return give_text(device, "uuid", into, size); }
int nvmlDeviceGetSerial(device_t device, char *into, unsigned size) { ENTER(device); return give_text(device, "serial", into, size); }
int nvmlDeviceGetArchitecture(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "architecture", into); }
int nvmlDeviceGetMemoryBusWidth(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "bus_width", into); }
int nvmlDeviceGetPowerUsage(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "power_mw", into); }
int nvmlDeviceGetEnforcedPowerLimit(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "power_limit_mw", into); }
int nvmlDeviceGetPowerManagementLimit(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "power_limit_mw", into); }
int nvmlDeviceGetPerformanceState(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "pstate", into); }
int nvmlDeviceGetPersistenceMode(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "persistence", into); }
int nvmlDeviceGetComputeMode(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "compute_mode", into); }
int nvmlDeviceGetFanSpeed(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "fan", into); }
int nvmlDeviceGetVirtualizationMode(device_t device, unsigned *into) { ENTER(device); return give_unsigned(device, "virtualization", into); }

int nvmlDeviceGetCudaComputeCapability(device_t device, int *major, int *minor)
{
    unsigned both;
    ENTER(device);
    int code = give_unsigned(device, "compute_capability", &both); /* 90 for 9.0 */
    if (code == SUCCESS) {
        *major = (int)both / 10;
        *minor = (int)both % 10;
    }
    return code;
}

static unsigned long long energy_mj(device_t device, int *code)
{
    double start = 0, rate_mw = 0;
    *code = give_number(device, "energy_mj", &start);
    scenario_number(device->scope, "energy_rate_mw", &rate_mw);
    return (unsigned long long)(start + rate_mw * scenario_age_s());
}

int nvmlDeviceGetTotalEnergyConsumption(device_t device, unsigned long long *into)
{
    int code;
    ENTER(device);
    *into = energy_mj(device, &code);
    return code;
}

struct pci_info {
    char legacy_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
};

int nvmlDeviceGetPciInfo_v3(device_t device, struct pci_info *into)
{
    char id[32] = "";
    ENTER(device);
    memset(into, 0, sizeof *into);
    int code = give_text(device, "pci", id, sizeof id); /* 00000000:19:00.0 */
    snprintf(into->id, sizeof into->id, "%.31s", id);
    sscanf(id, "%x:%x:%x", &into->domain, &into->bus, &into->device);
    snprintf(into->legacy_id, sizeof into->legacy_id, "%04x:%02x:%02x.0", into->domain & 0xffff, into->bus & 0xff,
             into->device & 0xff);
    return code;
}

/* ---- clocks, heat, use ---- */

static const char *clock_names[] = {"graphics", "sm", "memory", "video"};

static int give_clock(device_t device, const char *what, unsigned type, unsigned *into)
{
    char name[64];
    if (type > 3)
        return INVALID_ARGUMENT;
    snprintf(name, sizeof name, "%s_%s", what, clock_names[type]);
    return give_unsigned(device, name, into);
}

int nvmlDeviceGetClockInfo(device_t device, unsigned type, unsigned *into) { ENTER(device); return give_clock(device, "clock", type, into); }
int nvmlDeviceGetMaxClockInfo(device_t device, unsigned type, unsigned *into) { ENTER(device); return give_clock(device, "max_clock", type, into); }
int nvmlDeviceGetCurrentClocksThrottleReasons(device_t device, unsigned long long *into) { ENTER(device); return give_long(device, "event_reasons", into); }
int nvmlDeviceGetTemperature(device_t device, unsigned sensor, unsigned *into) { ENTER(device); return sensor == 0 ? give_unsigned(device, "temperature", into) : INVALID_ARGUMENT; }

#if DRIVER > 470
int nvmlDeviceGetCurrentClocksEventReasons(device_t device, unsigned long long *into) { ENTER(device); return give_long(device, "event_reasons", into); }
#endif

#if DRIVER > 535
struct temperature { unsigned version, sensor; int celsius; };

int nvmlDeviceGetTemperatureV(device_t device, struct temperature *into)
{
    ENTER(device);
    if (into->version != 0x100000C)
        return VERSION_MISMATCH;
    return give_unsigned(device, "temperature", (unsigned *)&into->celsius);
}
#endif

struct utilization { unsigned gpu, memory; };

int nvmlDeviceGetUtilizationRates(device_t device, struct utilization *into)
{
    ENTER(device);
    int code = give_unsigned(device, "utilization", &into->gpu);
    return code != SUCCESS ? code : give_unsigned(device, "memory_busy", &into->memory);
}

/* ---- memory ---- */

struct memory_v1 { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };

static int give_memory(device_t device, struct memory_v2 *into)
{
    int code = give_long(device, "memory_total", &into->total);
    if (code != SUCCESS)
        return code;
    into->reserved = into->used = 0;
    give_long(device, "memory_reserved", &into->reserved);
    give_long(device, "memory_used", &into->used);
    into->free = into->total - into->reserved - into->used;
    return SUCCESS;
}

/* Version 1 counts the reserved memory as used. */
int nvmlDeviceGetMemoryInfo(device_t device, struct memory_v1 *into)
{
    struct memory_v2 memory = {0};
    ENTER(device);
    int code = give_memory(device, &memory);
    into->total = memory.total;
    into->free = memory.free;
    into->used = memory.used + memory.reserved;
    return code;
}

#if DRIVER > 470
int nvmlDeviceGetMemoryInfo_v2(device_t device, struct memory_v2 *into)
{
    ENTER(device);
    return into->version == 0x2000028 ? give_memory(device, into) : VERSION_MISMATCH;
}
#endif

/* ---- faults ---- */

int nvmlDeviceGetEccMode(device_t device, unsigned *current, unsigned *pending)
{
    ENTER(device);
    int code = give_unsigned(device, "ecc_mode", current);
    *pending = *current;
    return code;
}

int nvmlDeviceGetTotalEccErrors(device_t device, unsigned type, unsigned counter, unsigned long long *into)
{
    char name[64];
    ENTER(device);
    snprintf(name, sizeof name, "ecc_%s_%s", type ? "uncorrected" : "corrected", counter ? "aggregate" : "volatile");
    return give_long(device, name, into);
}

int nvmlDeviceGetRemappedRows(device_t device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failure)
{
    ENTER(device);
    *uncorrected = *pending = *failure = 0;
    give_unsigned(device, "remapped_uncorrected", uncorrected);
    give_unsigned(device, "remapped_pending", pending);
    give_unsigned(device, "remapped_failure", failure);
    return give_unsigned(device, "remapped_corrected", corrected);
}

/* ---- field values ---- */

struct field {
    unsigned id, scope;
    long long timestamp_us, latency_us;
    unsigned type;
    int code;
    union { double real; unsigned number; unsigned long long large; } value;
};
enum { TYPE_UNSIGNED = 1, TYPE_UNSIGNED_LONG_LONG = 3 };
enum { FIELD_MEMORY_TEMPERATURE = 82, FIELD_ENERGY = 83, FIELD_POWER_AVERAGE = 185, FIELD_POWER_INSTANT = 186 };

/* Fields that a scenario names as field.<id> come from there. */
static void give_field(device_t device, struct field *field)
{
    char name[32];
    field->type = TYPE_UNSIGNED;
    switch (field->id) {
    case FIELD_MEMORY_TEMPERATURE:
        field->code = give_unsigned(device, "memory_temperature", &field->value.number);
        break;
    case FIELD_ENERGY:
        field->type = TYPE_UNSIGNED_LONG_LONG;
        field->value.large = energy_mj(device, &field->code);
        break;
    case FIELD_POWER_AVERAGE:
    case FIELD_POWER_INSTANT:
        field->code = give_unsigned(device, "power_mw", &field->value.number);
        break;
    default:
        snprintf(name, sizeof name, "field.%u", field->id);
        field->type = TYPE_UNSIGNED_LONG_LONG;
        field->code = give_long(device, name, &field->value.large);
    }
}

int nvmlDeviceGetFieldValues(device_t device, int count, struct field *fields)
{
    struct timespec now;
    ENTER(device);
    clock_gettime(CLOCK_REALTIME, &now);
    for (int at = 0; at < count; at++) {
        give_field(device, &fields[at]);
        fields[at].timestamp_us = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
        fields[at].latency_us = 1;
    }
    return SUCCESS;
}

/* ---- processes ---- */

#if DRIVER == 535
struct process { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; unsigned long long protected; };
#else
struct process { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; };
#endif

/* "1234:512000000 1300:-": memory "-" where the driver does not say. */
static int give_processes(device_t device, const char *name, unsigned *count, struct process *into)
{
    char text[SCENARIO_TEXT], *rest = text, *word;
    unsigned found = 0, room = into != NULL ? *count : 0;
    if (!scenario_get(device->scope, name, text, sizeof text))
        text[0] = '\0';
    while ((word = strsep(&rest, " ")) != NULL) {
        char *colon = strchr(word, ':');
        if (colon == NULL)
            continue;
        if (found < room) {
            memset(&into[found], 0, sizeof into[found]);
            into[found].pid = (unsigned)strtoul(word, NULL, 10);
            into[found].memory = colon[1] == '-' ? ~0ULL : strtoull(colon + 1, NULL, 10);
            into[found].gpu_instance = into[found].compute_instance = ~0u;
        }
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v2(device_t device, unsigned *count, struct process *into) { ENTER(device); return give_processes(device, "processes", count, into); }
int nvmlDeviceGetGraphicsRunningProcesses_v2(device_t device, unsigned *count, struct process *into) { ENTER(device); return give_processes(device, "graphics_processes", count, into); }
#if DRIVER > 470
int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned *count, struct process *into) { ENTER(device); return give_processes(device, "processes", count, into); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(device_t device, unsigned *count, struct process *into) { ENTER(device); return give_processes(device, "graphics_processes", count, into); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(device_t device, unsigned *count, struct process *into) { ENTER(device); return give_processes(device, "mps_processes", count, into); }
int nvmlDeviceGetConfComputeMemSizeInfo(device_t device, void *into) { (void)into; ENTER(device); return NOT_SUPPORTED; }
#endif
#if DRIVER > 535
int nvmlDeviceGetRunningProcessDetailList(device_t device, void *into) { (void)into; ENTER(device); return NOT_SUPPORTED; }
#endif

#include "mig_gpm.c"
