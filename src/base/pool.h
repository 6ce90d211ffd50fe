/* pool.h - the host's cores, used for one job at a time.
 *
 * parallel_for(pool, n, body, context) calls body(context, i, worker) for every i in 0..n-1, each
 * once, on the caller and on the pool's threads; it returns when all are done. Results must depend
 * on i only, never on the worker or the order: that keeps every output the same for any number of
 * threads. worker (0..pool_width-1) is for scratch memory. Calls do not nest. */
#ifndef IPU_BASE_POOL_H
#define IPU_BASE_POOL_H

#include "base/memory.h"

typedef struct Pool Pool;
typedef void PoolBody(void *context, size_t index, unsigned worker);

Pool *pool_create(unsigned threads); /* 0: as many as the host has cores */
unsigned pool_width(const Pool *pool);
void parallel_for(Pool *pool, size_t count, PoolBody *body, void *context);
void pool_destroy(Pool *pool); /* NULL is allowed */

unsigned host_cores(void);

#endif
