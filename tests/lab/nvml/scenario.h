/* The scenario: what the stub's GPUs are at this moment.
 *
 * A text file of "key = value" lines, written by tests/lab/nvml/scenario.py, read again whenever it changes, so that
 * a test can turn a GPU hot, lost or slow while a stream runs. Values hold %XX for the bytes a line cannot.
 *
 * It lies in $LAB_NVML_SCENARIO, or beside the library as nvml.scenario.
 */
#ifndef LAB_SCENARIO_H
#define LAB_SCENARIO_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SCENARIO_SLOTS 16384 /* a power of two; eight GPUs take some 400 */
#define SCENARIO_TEXT 1024

static pthread_mutex_t scenario_lock = PTHREAD_MUTEX_INITIALIZER;
static char scenario_path[SCENARIO_TEXT];
static char *scenario_text;
static struct { const char *key, *value; } scenario_table[SCENARIO_SLOTS];
static struct stat scenario_seen;

static unsigned scenario_hash(const char *key)
{
    unsigned hash = 2166136261u;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash & (SCENARIO_SLOTS - 1);
}

static void scenario_put(const char *key, const char *value)
{
    unsigned slot = scenario_hash(key);
    while (scenario_table[slot].key && strcmp(scenario_table[slot].key, key) != 0)
        slot = (slot + 1) & (SCENARIO_SLOTS - 1);
    scenario_table[slot].key = key;
    scenario_table[slot].value = value;
}

static void scenario_parse(char *text)
{
    char *line, *rest = text;
    memset(scenario_table, 0, sizeof scenario_table);
    for (int lines = 0; lines < SCENARIO_SLOTS / 2 && (line = strsep(&rest, "\n")) != NULL; lines++) {
        char *sign = strstr(line, " = ");
        if (sign != NULL) {
            *sign = '\0';
            scenario_put(line, sign + 3);
        }
    }
}

/* Read the file again if it is another one than last time. Called with the lock held. */
static void scenario_refresh(void)
{
    struct stat now;
    if (stat(scenario_path, &now) != 0) {
        memset(&now, 0, sizeof now);
    } else if (now.st_ino == scenario_seen.st_ino && now.st_size == scenario_seen.st_size &&
               now.st_mtim.tv_sec == scenario_seen.st_mtim.tv_sec &&
               now.st_mtim.tv_nsec == scenario_seen.st_mtim.tv_nsec) {
        return;
    }
    FILE *file = fopen(scenario_path, "r");
    char *text = calloc(1, (size_t)now.st_size + 1);
    size_t read = file != NULL && text != NULL ? fread(text, 1, (size_t)now.st_size, file) : 0;
    if (file != NULL)
        fclose(file);
    if (text == NULL)
        return;
    text[read] = '\0';
    scenario_parse(text);
    free(scenario_text);
    scenario_text = text;
    scenario_seen = now;
}

static const char *scenario_find(const char *key)
{
    for (unsigned slot = scenario_hash(key); scenario_table[slot].key; slot = (slot + 1) & (SCENARIO_SLOTS - 1))
        if (strcmp(scenario_table[slot].key, key) == 0)
            return scenario_table[slot].value;
    return NULL;
}

/* Copy the value of scope + name; 0 if there is none. */
static int scenario_get(const char *scope, const char *name, char *into, size_t size)
{
    char key[256];
    snprintf(key, sizeof key, "%s%s", scope, name);
    pthread_mutex_lock(&scenario_lock);
    scenario_refresh();
    const char *value = scenario_find(key);
    if (value != NULL)
        snprintf(into, size, "%s", value);
    pthread_mutex_unlock(&scenario_lock);
    return value != NULL;
}

static int scenario_number(const char *scope, const char *name, double *into)
{
    char text[64], *end;
    if (!scenario_get(scope, name, text, sizeof text))
        return 0;
    *into = strtod(text, &end);
    return end != text;
}

/* The value's bytes with %XX undone; returns their number, -1 if there is none. No NUL is added. */
static int scenario_bytes(const char *scope, const char *name, char *into, int size)
{
    char text[SCENARIO_TEXT], pair[3] = "";
    int length = 0;
    if (!scenario_get(scope, name, text, sizeof text))
        return -1;
    for (const char *at = text; *at != '\0' && length < size; at++) {
        if (*at == '%' && at[1] != '\0' && at[2] != '\0') {
            memcpy(pair, at + 1, 2);
            into[length++] = (char)strtol(pair, NULL, 16);
            at += 2;
        } else {
            into[length++] = *at;
        }
    }
    return length;
}

static double scenario_age_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)(now.tv_sec - scenario_seen.st_mtim.tv_sec) +
           (double)(now.tv_nsec - scenario_seen.st_mtim.tv_nsec) / 1e9;
}

/* The scenario in $LAB_NVML_SCENARIO, or nvml.scenario in the folder of this file. */
static void scenario_locate(const char *beside)
{
    const char *named = getenv("LAB_NVML_SCENARIO");
    if (named != NULL) {
        snprintf(scenario_path, sizeof scenario_path, "%s", named);
        return;
    }
    const char *slash = strrchr(beside, '/');
    int folder = slash != NULL ? (int)(slash - beside) : 1;
    snprintf(scenario_path, sizeof scenario_path, "%.*s/nvml.scenario", folder, slash != NULL ? beside : ".");
}

#endif
