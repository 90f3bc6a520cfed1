export type { Engine, EngineOptions, ExecutionTimes, LoadedModel } from './engine.ts'
