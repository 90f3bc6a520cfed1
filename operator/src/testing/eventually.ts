import type { KubeObject } from '@tutti/kube'
import type { Cache } from '../runtime/cache.ts'

const LIMIT_MS = 240_000

/** Resolves when `fits` returns true, which is checked at every event of the cache. @throws Error after four minutes. */
export async function eventually(
  cache: Pick<Cache<KubeObject>, 'resource'> & { subscribe(handler: () => void): () => void },
  fits: () => boolean,
): Promise<void> {
  const found = Promise.withResolvers<void>()
  const timer = setTimeout(
    () =>
      found.reject(
        new Error(`the cache of ${cache.resource.plural} never fitted: ${String(fits)}`),
      ),
    LIMIT_MS,
  )
  const end = cache.subscribe(() => {
    if (fits()) found.resolve()
  })
  if (fits()) found.resolve()
  try {
    await found.promise
  } finally {
    clearTimeout(timer)
    end()
  }
}
