export { buildGeneratedFiles } from './api/generated-files.ts'
