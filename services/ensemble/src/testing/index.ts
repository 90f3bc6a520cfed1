export { requestContext } from '@tutti/tensor/testing'
export { ensembleConfig, ensemblePlan, modelConfig, stepConfig } from './configs.ts'
export {
  type Emit,
  EnsembleDriver,
  type Fail,
  type Invoke,
  type Symbols,
} from './ensemble-driver.ts'
export { interpretEnsemble } from './interpret-ensemble.ts'
export {
  ensembleManifest,
  modelManifest,
  parsedEnsemble,
  parsedModel,
} from './manifests.ts'
export { type Dice, dice, randomEnsemble } from './random-ensemble.ts'
