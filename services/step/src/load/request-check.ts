import type { compileRequestCheck } from '@tutti/model-config'

/** Checks a request against its model's config and computes what the engine gets; throws ServeError. */
export type RequestCheck = ReturnType<typeof compileRequestCheck>
