export {
  echo,
  type ModelScript,
  response,
  ScriptedBackend,
  type ScriptedModel,
} from './scripted-backend.ts'
