export { readLabels } from './labels.ts'
export type { LoadOverrides } from './load-overrides.ts'
export {
  ModelRepository,
  type ModelRepositoryOptions,
  type OpenedModel,
} from './model-repository.ts'
export { OverrideDirectories, type OverrideDirectory } from './override-directory.ts'
export { type PollingOptions, pollRepository } from './poll-repository.ts'
export type { RepositoryModel } from './repository-model.ts'
export { type RepositoryChanges, RepositoryWatch } from './repository-watch.ts'
export { type ScanOptions, scanRepositories } from './scan.ts'
export {
  digestVersion,
  isInside,
  listVersionFiles,
  resolveModelFile,
  type VersionFile,
  versionDirectory,
} from './version-files.ts'
