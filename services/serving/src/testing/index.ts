export { RecordingControl } from './recording-control.ts'
export {
  echo,
  failsWith,
  type ModelScript,
  response,
  ScriptedBackend,
  type ScriptedModel,
  type ScriptedResponse,
} from './scripted-backend.ts'
export { createTlsFolder } from './tls-folder.ts'
