/* pool.c - threads that wait for a generation number to change, then take indices one by one. */
#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct Member {
    Pool *pool;
    pthread_t thread;
    unsigned worker;
} Member;

struct Pool {
    unsigned width;
    Member *members; /* width - 1 of them: the caller is worker 0 */
    pthread_mutex_t mutex;
    pthread_cond_t start, done;
    uint64_t generation;
    unsigned busy;
    bool quit;
    PoolBody *body;
    void *context;
    size_t count;
    atomic_size_t next;
};

static void take_indices(Pool *pool, unsigned worker)
{
    for (;;) {
        size_t index = atomic_fetch_add(&pool->next, 1);
        if (index >= pool->count)
            return;
        pool->body(pool->context, index, worker);
    }
}

static void *member_main(void *argument)
{
    Member *member = argument;
    Pool *pool = member->pool;
    uint64_t seen = 0;
    for (;;) {
        pthread_mutex_lock(&pool->mutex);
        while (pool->generation == seen && !pool->quit)
            pthread_cond_wait(&pool->start, &pool->mutex);
        seen = pool->generation;
        bool quit = pool->quit;
        pthread_mutex_unlock(&pool->mutex);
        if (quit)
            return NULL;
        take_indices(pool, member->worker);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->busy == 0)
            pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->mutex);
    }
}

unsigned host_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > 256 ? 256 : (unsigned)cores;
}

Pool *pool_create(unsigned threads)
{
    Pool *pool = xcalloc(1, sizeof *pool);
    unsigned wanted = threads ? threads : host_cores();
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->start, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->members = xcalloc(wanted, sizeof *pool->members);
    pool->width = 1;
    for (unsigned i = 1; i < wanted; i++) {
        Member *member = &pool->members[pool->width - 1];
        *member = (Member){.pool = pool, .worker = pool->width};
        if (pthread_create(&member->thread, NULL, member_main, member) != 0)
            break; /* fewer threads do the same work */
        pool->width++;
    }
    return pool;
}

unsigned pool_width(const Pool *pool)
{
    return pool->width;
}

void parallel_for(Pool *pool, size_t count, PoolBody *body, void *context)
{
    if (pool->width == 1 || count < 2) {
        for (size_t i = 0; i < count; i++)
            body(context, i, 0);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->body = body;
    pool->context = context;
    pool->count = count;
    atomic_store(&pool->next, 0);
    pool->busy = pool->width - 1;
    pool->generation++;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->mutex);
    take_indices(pool, 0);
    pthread_mutex_lock(&pool->mutex);
    while (pool->busy)
        pthread_cond_wait(&pool->done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

void pool_destroy(Pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->quit = true;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i + 1 < pool->width; i++)
        pthread_join(pool->members[i].thread, NULL);
    free(pool->members);
    pthread_mutex_destroy(&pool->mutex);
    pthread_cond_destroy(&pool->start);
    pthread_cond_destroy(&pool->done);
    free(pool);
}
