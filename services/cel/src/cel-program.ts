import type { CelValue } from './cel-value.ts'
import { celLibrary, type Environment, type ParseResult } from './library.ts'

/** An expression of CEL. It is compiled once, at the first evaluation. */
export class CelProgram {
  readonly #text: string
  #compiled: ParseResult | undefined

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

let shared: Environment | undefined

/** Makes an environment with CEL's functions, and those of Kubernetes' that we use and the library lacks. */
function environment(): Environment {
  if (shared !== undefined) return shared
  shared = new (celLibrary().Environment)({ unlistedVariablesAreDyn: true })
  shared.registerFunction('list<int>.sum(): int', (list: readonly bigint[]) =>
    list.reduce((sum, one) => sum + one, 0n),
  )
  return shared
}
