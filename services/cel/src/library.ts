import { createRequire } from 'node:module'
import type * as Library from '@marcbachmann/cel-js'

/*
 * The one file that loads the library. That takes 25 ms, and most processes evaluate nothing.
 */

export type { ASTNode, Environment, ParseResult } from '@marcbachmann/cel-js'

const require = createRequire(import.meta.url)

let loaded: typeof Library | undefined

/** Returns the library. */
export function celLibrary(): typeof Library {
  const library: typeof Library = loaded ?? require('@marcbachmann/cel-js')
  loaded = library
  return library
}
