import { type Clock, systemClock } from '@tutti/chassis'
import type { FetchRequest } from '../fetch/fetch-artifact.ts'
import type { CloudIdentity } from './cloud-tokens.ts'
import type { EnvironmentVariables } from './credential-file.ts'
import { bucketOpener } from './open-bucket.ts'

/**
 * Makes the function that opens buckets of Google and Azure for fetches. What a Secret has takes the place of the variables of its
 * name.
 */
export function cloudBuckets({
  env,
  identity,
  clock = systemClock,
}: {
  readonly env: EnvironmentVariables
  readonly identity: CloudIdentity
  readonly clock?: Clock
}): NonNullable<FetchRequest['openBucket']> {
  return async (at, context) => {
    const own = [...(context.credentials.cloud ?? [])].map(([name, text]) => [name, text.reveal()])
    const open = bucketOpener(at, { env: { ...env, ...Object.fromEntries(own) }, clock, identity })
    return await open(context)
  }
}
