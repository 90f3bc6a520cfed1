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
