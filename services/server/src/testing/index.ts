export { LocalCache } from '../cache/local-cache.ts'
export { RecordingControl } from './recording-control.ts'
export {
  echo,
  failsWith,
  type ModelScript,
  response,
  ScriptedBackend,
  type ScriptedModel,
} from './scripted-backend.ts'
export { SharedCache } from './shared-cache.ts'
export { inferObject, openTestServer, type TestServer } from './test-server.ts'
export { createTlsFolder } from './tls-folder.ts'
