const MODEL_PATH = '#/models/'

/** Where a model is shown. */
export function linkTo(model: string): string {
  return `${MODEL_PATH}${encodeURIComponent(model)}`
}

/** The model that an address leads to; undefined for the list. */
export function modelOf(hash: string): string | undefined {
  return hash.startsWith(MODEL_PATH) ? decode(hash.slice(MODEL_PATH.length)) : undefined
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
