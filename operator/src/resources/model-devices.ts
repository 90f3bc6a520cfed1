import { DEFAULT_DEVICE, type ModelSpec } from '@tutti/api'

/** The devices of the accelerator, or one where the Model wants its instances on a GPU: their number by resource. */
export function devicesOf({
  accelerator,
  instances,
}: ModelSpec): Readonly<Record<string, string>> | undefined {
  if (accelerator === undefined && instances?.kind !== 'KIND_GPU') return undefined
  const { resourceName = DEFAULT_DEVICE, count = 1 } = accelerator ?? {}
  // A text, as the server writes quantities: then it can be seen that it is there.
  return { [resourceName]: String(count) }
}
