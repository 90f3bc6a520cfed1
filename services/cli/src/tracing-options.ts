export { toTracingOptions } from '@tutti/chassis'
