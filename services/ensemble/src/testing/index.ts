export { ensembleConfig, modelConfig, requestContext, stepConfig } from './configs.ts'
