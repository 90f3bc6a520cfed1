export { ensembleConfig, ensemblePlan, modelConfig, requestContext, stepConfig } from './configs.ts'
export {
  type Emit,
  EnsembleDriver,
  type Fail,
  type Invoke,
  type Symbols,
} from './ensemble-driver.ts'
export {
  ensembleManifest,
  modelManifest,
  parsedEnsemble,
  parsedModel,
} from './manifests.ts'
export { type Dice, dice } from './random-ensemble.ts'
