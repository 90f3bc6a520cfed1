export { ensembleConfig, ensemblePlan, modelConfig, requestContext, stepConfig } from './configs.ts'
export {
  type Emit,
  EnsembleDriver,
  type Fail,
  type Invoke,
  type Symbols,
} from './ensemble-driver.ts'
