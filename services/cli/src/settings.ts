export { loadTracingSettings as loadSettings, TracingSettings as Settings } from '@tutti/chassis'
