import type { Clock } from '@tutti/chassis'
import type { BucketApi } from '../fetch/bucket.ts'
import type { FetchContext } from '../fetch/fetch-options.ts'
import { s3Api } from '../fetch/s3-api.ts'
import type { RepositoryUri } from '../repository-uri.ts'
import { asApi } from './as-api.ts'
import { AzureCredentials } from './as-credentials.ts'
import { readAwsCredentials } from './aws-credentials.ts'
import { AwsRoles } from './aws-roles.ts'
import type { CloudIdentity } from './cloud-tokens.ts'
import { type EnvironmentVariables, readEndpoint } from './credential-file.ts'
import { gsApi } from './gs-api.ts'
import { GoogleCredentials } from './gs-credentials.ts'

/** Gives the interface to a bucket with the credentials that are there now. @throws ServeError SETTING_INVALID */
export type OpenBucket = (
  context: Pick<FetchContext, 'bounds' | 'credentials' | 'signal'>,
) => Promise<BucketApi>

/**
 * Makes the function that opens the bucket of a repository, for the address's cloud.
 *
 * @param o.env - environment of the process with the credentials, which are read anew at each opening.
 * @param o.identity - the clouds' libraries; undefined in a program that does not bring them.
 */
export function bucketOpener(
  at: RepositoryUri,
  {
    env,
    clock,
    identity,
  }: {
    readonly env: EnvironmentVariables
    readonly clock: Clock
    readonly identity: CloudIdentity | undefined
  },
): OpenBucket {
  if (at.kind === 's3') {
    const roles = new AwsRoles({ env, clock })
    return async (context) => {
      const credentials = await readAwsCredentials(at, env)
      if (credentials.aws !== undefined) return s3Api(at.bucket, { credentials, clock })
      const { awsRegion: region, awsEndpoint } = credentials
      const keys = roles.keys(context, { region, isAws: awsEndpoint === undefined })
      return s3Api(at.bucket, { credentials, clock, keys })
    }
  }
  if (at.kind === 'as') {
    const credentials = new AzureCredentials(at, { env, identity })
    return async (context) => asApi(at.bucket, { ...(await credentials.read(context)), clock })
  }
  const credentials = new GoogleCredentials(at, { env, clock, identity })
  return async (context) => {
    // As Google's library for C++ reads it.
    const endpoint = readEndpoint('CLOUD_STORAGE_EMULATOR_ENDPOINT', env)
    return gsApi({ bucket: at.bucket, endpoint, token: await credentials.read(context) })
  }
}
