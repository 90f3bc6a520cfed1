export { type EnsembleSource, readEnsembles } from './ensemble-source.ts'
export { Router, type RouterOptions } from './router.ts'
