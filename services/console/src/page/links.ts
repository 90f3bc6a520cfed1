import type { StepDetail } from '../api/model-detail.ts'

const MODEL_PATH = '#/models/'

/** Makes the address at which the page shows a model. */
export function linkTo(model: string): string {
  return `${MODEL_PATH}${encodeURIComponent(model)}`
}

/** Reads the name of the model that an address shows; undefined for the list of models. */
export function modelOfHash(hash: string): string | undefined {
  return hash.startsWith(MODEL_PATH) ? decode(hash.slice(MODEL_PATH.length)) : undefined
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Tells whether the model of a step has a page: a built-in has none, nor has a model that is not known. */
export function hasPage({ state }: Pick<StepDetail, 'state'>): boolean {
  return state === 'ready' || state === 'not ready'
}
