/* file.c - see file.h. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

Status file_read(const char *path, size_t limit, Bytes *out)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return status_error("%s: %s", path, strerror(errno));
    struct stat information;
    if (fstat(file, &information) == 0 && S_ISDIR(information.st_mode)) {
        close(file);
        return status_error("%s: is a folder", path);
    }
    ARRAY(uint8_t) data = {0};
    array_reserve(&data, (size_t)(information.st_size > 0 ? information.st_size : 0) + 4096);
    Status status = STATUS_OK;
    for (;;) {
        array_reserve(&data, data.count + 4096);
        ssize_t got = read(file, data.items + data.count, data.capacity - data.count - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = status_error("%s: %s", path, strerror(errno));
        if (got <= 0)
            break;
        data.count += (size_t)got;
        if (data.count > limit) {
            status = status_error("%s: larger than the limit of %zu bytes", path, limit);
            break;
        }
    }
    close(file);
    if (!status_ok(status)) {
        array_free(&data);
        return status;
    }
    data.items[data.count] = 0;
    *out = (Bytes){data.items, data.count};
    return STATUS_OK;
}

static Status write_all(int file, const char *path, const uint8_t *data, size_t count)
{
    while (count) {
        ssize_t put = write(file, data, count);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return status_error("%s: %s", path, strerror(errno));
        data += put;
        count -= (size_t)put;
    }
    return STATUS_OK;
}

Status file_write(const char *path, const void *data, size_t count)
{
    struct stat information;
    if (stat(path, &information) == 0 && !S_ISREG(information.st_mode)) { /* /dev/null, a pipe */
        int file = open(path, O_WRONLY | O_CLOEXEC);
        if (file < 0)
            return status_error("%s: %s", path, strerror(errno));
        Status status = write_all(file, path, data, count);
        close(file);
        return status;
    }
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        fatal_out_of_memory();
    int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0) {
        Status status = status_error("%s: %s", path, strerror(errno));
        free(temporary);
        return status;
    }
    Status status = write_all(file, path, data, count);
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(file, 0666 & ~mask) < 0 && status_ok(status))
        status = status_error("%s: %s", path, strerror(errno));
    if (close(file) < 0 && status_ok(status))
        status = status_error("%s: %s", path, strerror(errno));
    if (status_ok(status) && rename(temporary, path) < 0)
        status = status_error("%s: %s", path, strerror(errno));
    if (!status_ok(status))
        unlink(temporary);
    free(temporary);
    return status;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

Status folder_create(const char *path)
{
    char *copy = xstrdup(path);
    Status status = STATUS_OK;
    for (char *end = copy + 1; status_ok(status); end++) {
        char kept = *end;
        if (kept != '/' && kept != 0)
            continue;
        *end = 0;
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            status = status_error("%s: %s", copy, strerror(errno));
        *end = kept;
        if (!kept)
            break;
    }
    free(copy);
    return status;
}

void bytes_free(Bytes *bytes)
{
    free(bytes->data);
    *bytes = (Bytes){0};
}

char *cache_folder(void)
{
    static const struct {
        const char *variable, *suffix;
    } places[] = {{"IPU_STACK_CACHE", ""},
                  {"XDG_CACHE_HOME", "/ipu-stack"},
                  {"HOME", "/.cache/ipu-stack"},
                  {"TMPDIR", "/ipu-stack"}};
    Text path = {0};
    for (size_t i = 0; i < countof(places) && !path.count; i++) {
        const char *value = getenv(places[i].variable);
        if (value && *value)
            text_printf(&path, "%s%s", value, places[i].suffix);
    }
    if (!path.count)
        text_append(&path, "/tmp/ipu-stack");
    return path.items;
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
