export { floats, type ScriptedModel, scriptedRouter, toFloats } from './scripted-router.ts'
