import { createDevices, type Devices } from '@tutti/backends'
import { flagRefusal } from '@tutti/chassis'
import { Accelerator } from '@tutti/ensemble'

/**
 * The devices of a process, as `--accelerator=RESOURCE=COUNT` and its environment say.
 *
 * @param text - the flag's value.
 * @throws ServeError FLAG_INVALID that names what came.
 */
export function openDevices(
  text: string | undefined,
  env?: Readonly<Record<string, string | undefined>>,
): Devices {
  if (text === undefined) return createDevices({ env })
  const [, resourceName = '', number = '1'] = /^([^=]*)(?:=(\d{1,4}))?$/.exec(text) ?? []
  const parsed = Accelerator.safeParse({ resourceName, count: Number(number) })
  if (!parsed.success) {
    const want = 'want DOMAIN/NAME=COUNT, e.g. nvidia.com/gpu=1, with a count of 1 to 64'
    throw flagRefusal('--accelerator', `got "${text}", ${want}`)
  }
  return createDevices({ env, accelerator: { resourceName, count: Number(number) } })
}
