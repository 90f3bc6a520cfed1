import type { UnreadyResource } from '../api/cluster.ts'

/**
 * Pattern of a message that begins with a field, as the operator's checks write fields: `steps[1](restore).inputMap[face]`,
 * `storage.secretRef.name`.
 */
const FIELD = /^([a-z][A-Za-z0-9]*(?:\.[A-Za-z0-9_-]+|\[[^\]]*\]|\([^)]*\))*): /

/** Splits the message of a refusal into the field that is wrong and the rest. In other messages the field is ''. */
export function fieldOf({ state, message }: Pick<UnreadyResource, 'state' | 'message'>): {
  readonly field: string
  readonly text: string
} {
  const [start = '', field = ''] = (state === 'refused' && FIELD.exec(message)) || []
  return { field, text: message.slice(start.length) }
}
