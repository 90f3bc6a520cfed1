export { readLabels } from './labels.ts'
export type { RepositoryModel } from './repository-model.ts'
export { type ScanOptions, scanRepositories } from './scan.ts'
export {
  digestVersion,
  listVersionFiles,
  resolveModelFile,
  type VersionFile,
  versionDirectory,
} from './version-files.ts'
