export type { RepositoryModel } from './repository-model.ts'
