import { DEFAULT_DEVICE, type ModelSpec } from '@tutti/api'

/**
 * Returns the devices that a Model's pod requests, as a number by resource name. Without `accelerator`, instances on a GPU get
 * one default device.
 *
 * @returns undefined if the Model needs no device.
 */
export function devicesOf({
  accelerator,
  instances,
}: ModelSpec): Readonly<Record<string, string>> | undefined {
  if (accelerator === undefined && instances?.kind !== 'KIND_GPU') return undefined
  const { resourceName = DEFAULT_DEVICE, count = 1 } = accelerator ?? {}
  // A text, as the server writes quantities: then it can be seen that it is there.
  return { [resourceName]: String(count) }
}
