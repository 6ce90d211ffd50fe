/* file.h - whole files in and out.
 *
 * Reading takes a limit so that a hostile or mistaken file cannot fill the memory. Writing goes to
 * a temporary file in the same folder and renames it: a reader never sees half a file. Messages
 * name the path. */
#ifndef IPU_BASE_FILE_H
#define IPU_BASE_FILE_H

#include "base/memory.h"

typedef struct Bytes { /* heap memory, free with bytes_free; data is followed by one zero byte */
    uint8_t *data;
    size_t count;
} Bytes;

enum { FILE_LIMIT_TEXT = 64 << 20 };
#define FILE_LIMIT_DATA ((size_t)8 << 30)

Status file_read(const char *path, size_t limit, Bytes *out);
Status file_write(const char *path, const void *data, size_t count);
bool file_exists(const char *path);
Status folder_create(const char *path); /* with its parents */
void bytes_free(Bytes *bytes);

/* $IPU_STACK_CACHE, else $XDG_CACHE_HOME/ipu-stack, else $HOME/.cache/ipu-stack, else a folder in
 * the system's temporary folder. Heap memory. */
char *cache_folder(void);

double seconds_now(void); /* monotonic */

#endif
