/* nvidia-smi without a GPU: the CSV queries, the list and the failures of the real one, from the same scenario as the
 * stub library. For the droplets where NVML's library cannot be used from Python.
 *
 * Texts, exit statuses and cells are those seen in real ones; no column is invented: an unknown field fails the query.
 */
#include "scenario.h"

#include <unistd.h>

#ifndef DRIVER
#define DRIVER 580
#endif

enum kind { TEXT, WHOLE, TENTHS, HEX, PSTATE, SWITCH, FREE_MEMORY, INDEX, CLOCK_TIME };

struct column {
    const char *name, *key, *function;
    enum kind kind;
    double scale;
    const char *unit;
};

static const double MIB = 1048576.0;
static const struct column columns[] = {
    {"timestamp", "", "", CLOCK_TIME, 1, ""},
    {"index", "", "", INDEX, 1, ""},
    {"uuid", "uuid", "nvmlDeviceGetUUID", TEXT, 1, ""},
    {"gpu_uuid", "uuid", "nvmlDeviceGetUUID", TEXT, 1, ""},
    {"name", "name", "nvmlDeviceGetName", TEXT, 1, ""},
    {"pci.bus_id", "pci", "nvmlDeviceGetPciInfo_v3", TEXT, 1, ""},
    {"driver_version", ":driver_version", "nvmlSystemGetDriverVersion", TEXT, 1, ""},
    {"pstate", "pstate", "nvmlDeviceGetPerformanceState", PSTATE, 1, ""},
    {"utilization.gpu", "utilization", "nvmlDeviceGetUtilizationRates", WHOLE, 1, " %"},
    {"utilization.memory", "memory_busy", "nvmlDeviceGetUtilizationRates", WHOLE, 1, " %"},
    {"memory.total", "memory_total", "nvmlDeviceGetMemoryInfo_v2", WHOLE, 1 / 1048576.0, " MiB"},
    {"memory.reserved", "memory_reserved", "nvmlDeviceGetMemoryInfo_v2", WHOLE, 1 / 1048576.0, " MiB"},
    {"memory.used", "memory_used", "nvmlDeviceGetMemoryInfo_v2", WHOLE, 1 / 1048576.0, " MiB"},
    {"memory.free", "memory_total", "nvmlDeviceGetMemoryInfo_v2", FREE_MEMORY, 1, " MiB"},
    {"temperature.gpu", "temperature", "nvmlDeviceGetTemperature", WHOLE, 1, ""},
    {"temperature.memory", "memory_temperature", "nvmlDeviceGetFieldValues", WHOLE, 1, ""},
    {"power.draw", "power_mw", "nvmlDeviceGetPowerUsage", TENTHS, 0.001, " W"},
    {"power.draw.average", "power_mw", "nvmlDeviceGetPowerUsage", TENTHS, 0.001, " W"},
    {"power.draw.instant", "power_mw", "nvmlDeviceGetPowerUsage", TENTHS, 0.001, " W"},
    {"power.limit", "power_limit_mw", "nvmlDeviceGetPowerManagementLimit", TENTHS, 0.001, " W"},
    {"enforced.power.limit", "power_limit_mw", "nvmlDeviceGetEnforcedPowerLimit", TENTHS, 0.001, " W"},
    {"clocks.sm", "clock_sm", "nvmlDeviceGetClockInfo", WHOLE, 1, " MHz"},
    {"clocks.mem", "clock_memory", "nvmlDeviceGetClockInfo", WHOLE, 1, " MHz"},
    {"clocks.gr", "clock_graphics", "nvmlDeviceGetClockInfo", WHOLE, 1, " MHz"},
    {"clocks.max.sm", "max_clock_sm", "nvmlDeviceGetMaxClockInfo", WHOLE, 1, " MHz"},
    {"clocks.max.mem", "max_clock_memory", "nvmlDeviceGetMaxClockInfo", WHOLE, 1, " MHz"},
    {"clocks_throttle_reasons.active", "event_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", HEX, 1, ""},
#if DRIVER > 470
    {"clocks_event_reasons.active", "event_reasons", "nvmlDeviceGetCurrentClocksEventReasons", HEX, 1, ""},
#endif
    {"pcie.link.gen.current", "pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", WHOLE, 1, ""},
    {"pcie.link.width.current", "pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", WHOLE, 1, ""},
    {"fan.speed", "fan", "nvmlDeviceGetFanSpeed", WHOLE, 1, " %"},
    {"ecc.errors.uncorrected.volatile.total", "ecc_uncorrected_volatile", "nvmlDeviceGetTotalEccErrors", WHOLE, 1, ""},
    {"ecc.errors.uncorrected.aggregate.total", "ecc_uncorrected_aggregate", "nvmlDeviceGetTotalEccErrors", WHOLE, 1, ""},
    {"mig.mode.current", "mig_mode", "nvmlDeviceGetMigMode", SWITCH, 1, ""},
    {"persistence_mode", "persistence", "nvmlDeviceGetPersistenceMode", SWITCH, 1, ""},
    {"compute_mode", "compute_mode_text", "nvmlDeviceGetComputeMode", TEXT, 1, ""},
};
enum { COLUMNS = sizeof columns / sizeof columns[0], MOST_WISHES = 64 };

static int units = 1;

static const char *cell_for(int code)
{
    switch (code) {
    case 4: return "[Insufficient Permissions]";
    case 13: return "[Function Not Found]";
    case 15: return "[GPU is lost]";
    case 16: return "[GPU requires reset]";
    case 999: return "[Unknown Error]";
    default: return "[N/A]";
    }
}

/* The failure that a scenario has for this function, on this GPU or everywhere; 0 for none. */
static int failure(const char *scope, const char *function)
{
    char key[128];
    double code = 0;
    snprintf(key, sizeof key, "error.%s", function);
    if (scenario_number("", key, &code) || scenario_number(scope, key, &code) || scenario_number(scope, "error", &code))
        return (int)code;
    return 0;
}

static void print_number(const struct column *column, double value)
{
    const char *unit = units ? column->unit : "";
    switch (column->kind) {
    case TENTHS: printf("%.2f%s", value * column->scale, unit); break;
    case HEX: printf("0x%016llx", (unsigned long long)value); break;
    case PSTATE: printf("P%.0f", value); break;
    case SWITCH: printf("%s", value != 0 ? "Enabled" : "Disabled"); break;
    default: printf("%.0f%s", value * column->scale, unit);
    }
}

static void print_time(void)
{
    struct timespec now;
    char text[64];
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", localtime(&now.tv_sec));
    printf("%s.%03ld", text, now.tv_nsec / 1000000);
}

static void print_cell(int gpu, const char *scope, const struct column *column)
{
    char text[256];
    double value, other;
    int length, code = failure(scope, column->function);
    if (column->kind == INDEX)
        printf("%d", gpu);
    else if (column->kind == CLOCK_TIME)
        print_time();
    else if (code != 0)
        fputs(cell_for(code), stdout);
    else if (column->kind == TEXT) {
        const char *key = column->key[0] == ':' ? column->key + 1 : column->key;
        length = scenario_bytes(column->key[0] == ':' ? "" : scope, key, text, sizeof text);
        if (length < 0)
            fputs("[N/A]", stdout);
        else
            printf("%.*s", length, text); /* ends at a NUL, as a C program does */
    } else if (!scenario_number(scope, column->key, &value))
        fputs("[N/A]", stdout);
    else if (column->kind == FREE_MEMORY) {
        value -= scenario_number(scope, "memory_used", &other) ? other : 0;
        value -= scenario_number(scope, "memory_reserved", &other) ? other : 0;
        printf("%.0f%s", value / MIB, units ? " MiB" : "");
    } else
        print_number(column, value);
}

static int find_columns(char *list, const struct column **wishes)
{
    int count = 0;
    for (char *name; (name = strsep(&list, ",")) != NULL && count < MOST_WISHES;) {
        int at = 0;
        while (at < COLUMNS && strcmp(columns[at].name, name) != 0)
            at++;
        if (at == COLUMNS) {
            printf("Field \"%s\" is not a valid field to query.\n\n", name);
            exit(2);
        }
        wishes[count++] = &columns[at];
    }
    return count;
}

static int gpu_count(void)
{
    double count = 0;
    scenario_number("", "count", &count);
    return (int)count;
}

static int query_gpus(char *list, int header)
{
    char copy[SCENARIO_TEXT * 2], scope[32];
    const struct column *wishes[MOST_WISHES];
    snprintf(copy, sizeof copy, "%s", list);
    int count = find_columns(copy, wishes);
    for (int at = 0; header && at < count; at++)
        printf("%s%s", wishes[at]->name, at + 1 < count ? ", " : "\n");
    for (int gpu = 0; gpu < gpu_count(); gpu++) {
        snprintf(scope, sizeof scope, "gpu%d.", gpu);
        if (failure(scope, "nvmlDeviceGetHandleByIndex_v2") == 15 && failure(scope, "none") == 0) {
            char bus[32] = "";
            scenario_get(scope, "pci", bus, sizeof bus);
            printf("Unable to determine the device handle for GPU%d: %s: GPU is lost.  Reboot the system to recover this GPU\n",
                   gpu, bus);
            return 15;
        }
        for (int at = 0; at < count; at++) {
            print_cell(gpu, scope, wishes[at]);
            fputs(at + 1 < count ? ", " : "\n", stdout);
        }
    }
    fflush(stdout);
    return 0;
}

/* gpu_uuid, pid, process_name, used_memory */
static int query_processes(void)
{
    char scope[32], uuid[96], text[SCENARIO_TEXT], path[64], name[256];
    for (int gpu = 0; gpu < gpu_count(); gpu++) {
        snprintf(scope, sizeof scope, "gpu%d.", gpu);
        if (!scenario_get(scope, "uuid", uuid, sizeof uuid) || !scenario_get(scope, "processes", text, sizeof text))
            continue;
        char *rest = text;
        for (char *word; (word = strsep(&rest, " ")) != NULL;) {
            char *colon = strchr(word, ':');
            if (colon == NULL)
                continue;
            snprintf(path, sizeof path, "/proc/%lu/exe", strtoul(word, NULL, 10));
            ssize_t length = readlink(path, name, sizeof name - 1);
            printf("%s, %lu, %.*s, ", uuid, strtoul(word, NULL, 10), length < 0 ? 11 : (int)length,
                   length < 0 ? "[Not Found]" : name);
            if (colon[1] == '-')
                printf("[N/A]\n");
            else
                printf("%.0f%s\n", strtod(colon + 1, NULL) / MIB, units ? " MiB" : "");
        }
    }
    fflush(stdout);
    return 0;
}

/* What the real one says when NVML does not start; it says it on standard output. */
static int start_failure(void)
{
    char version[64] = "";
    int code = failure("", "nvmlInitWithFlags");
    scenario_get("", "nvml_version", version, sizeof version);
    if (code == 9)
        printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
               "Make sure that the latest NVIDIA driver is installed and running.\n\n");
    else if (code == 18)
        printf("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: %s\n", version);
    else if (code != 0)
        printf("Failed to initialize NVML: %s\n", code == 4 ? "Insufficient Permissions" : "Unknown Error");
    else if (gpu_count() == 0)
        printf("No devices were found\n");
    return code != 0 ? code : gpu_count() == 0 ? 6 : 0;
}

static void locate(void)
{
    char self[SCENARIO_TEXT] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        scenario_locate(self);
    if (access(scenario_path, R_OK) != 0)
        scenario_locate("/usr/lib/x86_64-linux-gnu/nvidia-smi");
}

int main(int count, char **words)
{
    char *gpus = NULL;
    int processes = 0, header = 1, code;
    double every_s = 0;
    locate();
    for (int at = 1; at < count; at++) {
        if (strncmp(words[at], "--query-gpu=", 12) == 0)
            gpus = words[at] + 12;
        else if (strncmp(words[at], "--query-compute-apps=", 21) == 0)
            processes = 1;
        else if (strncmp(words[at], "--format=", 9) == 0) {
            header = strstr(words[at], "noheader") == NULL;
            units = strstr(words[at], "nounits") == NULL;
        } else if ((strcmp(words[at], "-l") == 0 || strcmp(words[at], "-lms") == 0) && at + 1 < count) {
            every_s = strtod(words[at + 1], NULL) / (words[at][2] == 'm' ? 1000 : 1);
            at++;
        } else {
            printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n");
            return 2;
        }
    }
    if (gpus == NULL && !processes)
        gpus = "index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw";
    do {
        code = start_failure();
        if (code == 0)
            code = gpus != NULL ? query_gpus(gpus, header) : query_processes();
        header = 0;
        if (every_s > 0)
            usleep((useconds_t)(every_s * 1e6));
    } while (every_s > 0 && code == 0 && !ferror(stdout));
    return code;
}
