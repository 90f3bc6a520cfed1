import type { z } from 'zod'
import type { Builtin, CodeBuiltin } from './builtin.ts'
import { normalise } from './image/normalise.ts'
import { cast } from './numeric/cast.ts'
import { softmax } from './numeric/softmax.ts'
import { joinTexts } from './text/join-texts.ts'

/** The built-in steps, in the order of the documentation. One that is added has a file of its own and a line here. */
export const BUILTINS = [normalise, cast, softmax, joinTexts] as const

type Listed = (typeof BUILTINS)[number]
type ListedCode = Extract<Listed, CodeBuiltin>

export type BuiltinName = Listed['name']
/** Names of the built-ins of which `backends` has the code. */
export type CodeBuiltinName = ListedCode['name']
/** The options of a built-in, parsed. */
export type OptionsOf<Name extends BuiltinName> = z.output<
  Extract<Listed, { readonly name: Name }>['options']
>

/** Tells whether `backends` has the code of a built-in of the list. */
export function isCodeBuiltin(
  builtin: Builtin,
): builtin is CodeBuiltin & { readonly name: CodeBuiltinName } {
  return builtin.kind === 'code'
}
