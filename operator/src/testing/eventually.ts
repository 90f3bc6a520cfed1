import type { KubeObject } from '@tutti/kube'
import type { Cache } from '../runtime/cache.ts'

const LIMIT_MS = 240_000

/** Resolves as soon as a cache fits; looks at every event. @throws Error after a minute. */
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
