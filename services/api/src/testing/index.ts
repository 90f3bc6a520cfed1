export { ensembleManifest, modelManifest, parsedEnsemble } from './manifests.ts'
