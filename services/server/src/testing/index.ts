export { type GrpcDoor, inferObject, openGrpcDoor } from './grpc-door.ts'
export { RecordingControl } from './recording-control.ts'
export {
  echo,
  type ModelScript,
  response,
  ScriptedBackend,
  type ScriptedModel,
} from './scripted-backend.ts'
