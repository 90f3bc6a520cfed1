import { parseAllDocuments, stringify } from 'yaml'

type Fields = Readonly<Record<string, unknown>>

const STEPS = [
  { name: 'detector', modelRef: { name: 'yolo' }, inputMap: { images: 'image' } },
  { name: 'ocr', modelRef: { name: 'crnn' }, inputMap: { crop: 'detector.crops' } },
]

/**
 * The YAML of a page as manifests: what is one stays as it is, and a part of one gets the rest around it.
 *
 * @throws Error if it is neither, or no YAML.
 */
export function toManifests(text: string): string {
  if (/^apiVersion: tutti\.dev/m.test(text)) return text
  return parseAllDocuments(text)
    .map((document) => {
      if (document.errors.length > 0) throw new Error(document.errors.join('\n'))
      return `---\n${stringify(wrap(document.toJS()))}`
    })
    .join('')
}

function wrap(part: unknown): Fields {
  if (Array.isArray(part)) return ensemble({ steps: [STEPS[0], ...part.map(placeStep)] })
  if (!isFields(part)) throw new Error(`no part of a manifest: ${JSON.stringify(part)}`)
  if ('expose' in part || 'steps' in part) return ensemble(part)
  if ('auth' in part) {
    return ensemble({ expose: { ingress: { hosts: ['plates.example.com'] }, ...part } })
  }
  const spec = { modelFormat: { name: 'onnx' }, storageUri: 'pvc://models/yolo' }
  const more = isFields(part['spec']) ? part['spec'] : part
  return manifest('Model', { ...spec, ...more })
}

/** A step that a page shows for one of its fields has its tensors from here. */
function placeStep(step: unknown): unknown {
  return isFields(step) ? { ...STEPS.find(({ name }) => name === step['name']), ...step } : step
}

function ensemble(part: Fields): Fields {
  const inputs = [{ name: 'image', datatype: 'UINT8', shape: [-1, -1, 3] }]
  const outputs = [{ name: 'text', from: 'ocr.text' }]
  return manifest('Ensemble', { inputs, outputs, steps: STEPS, ...part })
}

function manifest(kind: string, spec: Fields): Fields {
  return { apiVersion: 'tutti.dev/v1alpha1', kind, metadata: { name: 'part' }, spec }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
