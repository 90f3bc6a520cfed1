import { z } from 'zod'
import { refuseOption } from '../input-reader.ts'

const MAX_NAME = 255

/** Makes the schema of an option that names a file beside the model. */
export function fileOption(about: string) {
  return z
    .string()
    .min(1)
    .max(MAX_NAME)
    .regex(/^[^/\\\0]+$/, 'the name of a file, without a folder')
    .refine((name) => name !== '.' && name !== '..', 'the name of a file')
    .describe(about)
}

const MAX_TEXTS = 65_536
const MAX_TEXT = 1024

/** Makes the schema of an option that lists texts. */
export function textsOption(about: string) {
  return z.array(z.string().max(MAX_TEXT)).min(1).max(MAX_TEXTS).describe(about)
}

/** @throws PortFault unless one of two options is there. */
export function checkOneOf(
  name: string,
  list: readonly string[] | undefined,
  file: string | undefined,
): void {
  if ((list === undefined) === (file === undefined)) {
    refuseOption(name, list === undefined ? 'neither' : 'both', `either ${name} or file`)
  }
}
