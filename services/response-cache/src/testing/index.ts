export { SharedCache } from './shared-cache.ts'
