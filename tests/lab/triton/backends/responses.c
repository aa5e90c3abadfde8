/* A native backend with response statistics: COUNT responses, the first after FIRST_MS, the others DELAY_MS apart.
 *
 * Triton's Python backend (2.51.0) reports none, so that response_stats is {} for every model on it, vLLM's included.
 * The declarations are those of tritonbackend.h (24.10), as far as they are used here; every pointer is opaque.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void error_t, instance_t, request_t, input_t, factory_t, response_t, output_t, statistics_t;

error_t *TRITONBACKEND_RequestInput(request_t *, const char *name, input_t **);
error_t *TRITONBACKEND_InputBuffer(input_t *, uint32_t index, const void **, uint64_t *size, int *memory, int64_t *id);
error_t *TRITONBACKEND_RequestRelease(request_t *, uint32_t flags);
error_t *TRITONBACKEND_ResponseFactoryNew(factory_t **, request_t *);
error_t *TRITONBACKEND_ResponseFactoryDelete(factory_t *);
error_t *TRITONBACKEND_ResponseFactorySendFlags(factory_t *, uint32_t flags);
error_t *TRITONBACKEND_ResponseNewFromFactory(response_t **, factory_t *);
error_t *TRITONBACKEND_ResponseOutput(response_t *, output_t **, const char *, int type, const int64_t *, uint32_t dims);
error_t *TRITONBACKEND_OutputBuffer(output_t *, void **, uint64_t size, int *memory, int64_t *id);
error_t *TRITONBACKEND_ResponseSend(response_t *, uint32_t flags, error_t *);
error_t *TRITONBACKEND_ModelInstanceReportStatistics(instance_t *, request_t *, _Bool success, uint64_t exec_start,
                                                     uint64_t compute_start, uint64_t compute_end, uint64_t exec_end);
error_t *TRITONBACKEND_ModelInstanceReportBatchStatistics(instance_t *, uint64_t batch, uint64_t exec_start,
                                                          uint64_t compute_start, uint64_t compute_end, uint64_t exec_end);
error_t *TRITONBACKEND_ModelInstanceResponseStatisticsNew(statistics_t **);
error_t *TRITONBACKEND_ModelInstanceResponseStatisticsDelete(statistics_t *);
error_t *TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(statistics_t *, instance_t *);
error_t *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(statistics_t *, factory_t *);
error_t *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(statistics_t *, uint64_t);
error_t *TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(statistics_t *, uint64_t);
error_t *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(statistics_t *, uint64_t);
error_t *TRITONBACKEND_ModelInstanceReportResponseStatistics(statistics_t *);

enum { TYPE_INT32 = 8, FINAL = 1, RELEASE_ALL = 1 };

/* Nothing that can fail here leaves the server usable: a lab backend stops where it stands. */
static void must(error_t *error)
{
    if (error != NULL)
        abort();
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_ms(int32_t wait)
{
    struct timespec time = {wait / 1000, (wait % 1000) * 1000000L};
    nanosleep(&time, NULL);
}

/* The number of an input; the default where it was not sent. */
static int32_t number(request_t *request, const char *name, int32_t otherwise)
{
    input_t *input;
    const void *buffer;
    uint64_t size;
    int memory;
    int64_t id;
    int32_t value;
    if (TRITONBACKEND_RequestInput(request, name, &input) != NULL) /* the error is leaked: a few bytes, in a lab */
        return otherwise;
    must(TRITONBACKEND_InputBuffer(input, 0, &buffer, &size, &memory, &id));
    memcpy(&value, buffer, sizeof value);
    return value;
}

static void send_one(factory_t *factory, int32_t value)
{
    response_t *response;
    output_t *output;
    void *buffer;
    int memory = 0;
    int64_t id = 0, shape[] = {1};
    must(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
    must(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT", TYPE_INT32, shape, 1));
    must(TRITONBACKEND_OutputBuffer(output, &buffer, sizeof value, &memory, &id));
    memcpy(buffer, &value, sizeof value);
    must(TRITONBACKEND_ResponseSend(response, 0, NULL));
}

static void report_one(instance_t *instance, factory_t *factory, uint64_t start, uint64_t computed, uint64_t end)
{
    statistics_t *statistics;
    must(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&statistics));
    must(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(statistics, instance));
    must(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(statistics, factory));
    must(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(statistics, start));
    must(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(statistics, computed));
    must(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(statistics, end));
    must(TRITONBACKEND_ModelInstanceReportResponseStatistics(statistics));
    must(TRITONBACKEND_ModelInstanceResponseStatisticsDelete(statistics));
}

static void answer(instance_t *instance, request_t *request)
{
    uint64_t exec_start = now_ns(), start = exec_start, computed = exec_start, end;
    int32_t count = number(request, "COUNT", 1);
    int32_t first_ms = number(request, "FIRST_MS", 0), delay_ms = number(request, "DELAY_MS", 0);
    factory_t *factory;
    must(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    for (int32_t at = 0; at < count; at++) {
        sleep_ms(at == 0 ? first_ms : delay_ms);
        computed = now_ns();
        send_one(factory, at);
        end = now_ns();
        report_one(instance, factory, start, computed, end);
        start = end;
    }
    must(TRITONBACKEND_ResponseFactorySendFlags(factory, FINAL));
    must(TRITONBACKEND_ModelInstanceReportStatistics(instance, request, 1, exec_start, exec_start, computed, now_ns()));
    must(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, 1, exec_start, exec_start, computed, now_ns()));
    must(TRITONBACKEND_ResponseFactoryDelete(factory));
    must(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
}

error_t *TRITONBACKEND_ModelInstanceExecute(instance_t *instance, request_t **requests, uint32_t count)
{
    for (uint32_t at = 0; at < count; at++)
        answer(instance, requests[at]);
    return NULL;
}
