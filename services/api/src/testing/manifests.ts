import { EnsembleManifest, ModelManifest } from '../manifests.ts'

/** A Model as somebody writes it; `spec` is added to the least that is wanted. Not checked. */
export function modelManifest(name: string, spec: Readonly<Record<string, unknown>> = {}) {
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Model',
    metadata: { name },
    spec: { modelFormat: { name: 'onnx' }, storageUri: `pvc://models/${name}`, ...spec },
  }
}

/** An Ensemble as somebody writes it: x -> step `a` (Model `m`, x to y) -> y, with `spec` over it. Not checked. */
export function ensembleManifest(name: string, spec: Readonly<Record<string, unknown>> = {}) {
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Ensemble',
    metadata: { name },
    spec: {
      inputs: [{ name: 'x', datatype: 'FP32', shape: [4] }],
      outputs: [{ name: 'y', from: 'a.y' }],
      steps: [{ name: 'a', modelRef: { name: 'm' }, inputMap: { x: 'x' } }],
      ...spec,
    },
  }
}

/** The same, checked. */
export function parsedModel(...[name, spec]: Parameters<typeof modelManifest>): ModelManifest {
  return ModelManifest.parse(modelManifest(name, spec))
}

/** The same, checked. */
export function parsedEnsemble(
  ...[name, spec]: Parameters<typeof ensembleManifest>
): EnsembleManifest {
  return EnsembleManifest.parse(ensembleManifest(name, spec))
}
