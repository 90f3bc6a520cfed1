export type { ConfigOverrides } from './config-override.ts'
export { type FetchCredentials, readCredentials } from './fetch/credentials.ts'
export { fetchArtifact, verifyArtifact } from './fetch/fetch-artifact.ts'
export { FETCH_BOUNDS, type FetchBounds } from './fetch/fetch-options.ts'
export { isFetched, showUri } from './fetch/source-uri.ts'
export { readLabels } from './labels.ts'
export type { LoadOverrides } from './load-overrides.ts'
export { repositoryUnreadable } from './log-events.ts'
export {
  checkModelName,
  type ModelKind,
  ModelRepository,
  type OpenedModel,
} from './model-repository.ts'
export { OverrideDirectories } from './override-directory.ts'
export { pollRepository } from './poll-repository.ts'
export { cloudBuckets } from './remote/cloud-buckets.ts'
export type {
  AzureIdentity,
  CloudIdentity,
  SendTokenRequest,
  TokenAnswer,
  TokenRequest,
  TokenSource,
} from './remote/cloud-tokens.ts'
export { podCloudIdentity } from './remote/pod-cloud-identity.ts'
export { awsPodIdentity } from './remote/pod-identity.ts'
export { RepositoryMirror } from './remote/repository-mirror.ts'
export type { RepositoryModel } from './repository-model.ts'
export { isRemote, parseRepositoryUri } from './repository-uri.ts'
export { type RepositoryChanges, RepositoryWatch } from './repository-watch.ts'
export { type ModelDirectory, type ScanOptions, scanRepositories } from './scan.ts'
export {
  digestVersion,
  isInside,
  listVersionFiles,
  listVersionNames,
  resolveModelFile,
  versionDirectory,
} from './version-files.ts'
