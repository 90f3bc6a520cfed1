import { createRequire } from 'node:module'
import type * as Library from '@marcbachmann/cel-js'
import type { CelValue } from './cel-value.ts'

/*
 * The one file that knows the library. It is loaded for the first program that is evaluated: most processes evaluate none,
 * and it takes 25 ms.
 */

const require = createRequire(import.meta.url)

/** An expression of CEL. It is compiled once, at the first evaluation. */
export class CelProgram {
  readonly #text: string
  #compiled: Library.ParseResult | undefined

  constructor(text: string) {
    this.#text = text
  }

  /**
   * Evaluates the expression. Integers in the result are of the type bigint.
   *
   * @param variables - values, by the names that the expression uses.
   * @throws Error of the library for an expression that does not compile, a member that is absent, or a type that an operator
   *   does not take.
   */
  evaluate(variables: Readonly<Record<string, CelValue>>): unknown {
    this.#compiled ??= environment().parse(this.#text)
    return this.#compiled(variables)
  }
}

let shared: Library.Environment | undefined

/** Makes an environment with CEL's functions, and those of Kubernetes' that we use and the library lacks. */
function environment(): Library.Environment {
  if (shared !== undefined) return shared
  const library: typeof Library = require('@marcbachmann/cel-js')
  shared = new library.Environment({ unlistedVariablesAreDyn: true })
  shared.registerFunction('list<int>.sum(): int', (list: readonly bigint[]) =>
    list.reduce((sum, one) => sum + one, 0n),
  )
  return shared
}
