import { type ASTNode, celLibrary, type Environment, type ParseResult } from './library.ts'

/** The types of the lists that a condition reads tensors as. */
export type ElementType = 'bool' | 'int' | 'uint' | 'double' | 'string'

/** The elements of a tensor, row-major: numbers for double, integers as bigint. */
export type Elements = readonly (boolean | bigint | number | string)[]

/** A value of a request parameter. */
export type ParameterValue = boolean | bigint | number | string

const MAX_NODES = 200
const MAX_DEPTH = 20

/** Macros that go through a list, so that one within another would cost the square of its length. */
const LOOPS = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])

/** Functions that are left out: the library's is a backtracking regular expression, of which a short text can take minutes. */
const REFUSED = new Set(['matches'])

/** The name in the compiled text of the tensor with this index. */
const variable = (index: number): string => `tensor_${index}`

/**
 * A condition over small tensors and the parameters of a request: `tensors["NAME"]` is a list of the tensor's elements, and
 * `parameters["NAME"]` a value. Its cost is bounded: 200 nodes, 20 levels, no macro within a macro, no `matches`.
 */
export class Condition {
  readonly text: string
  /** Names of the tensors that it reads, each once. */
  readonly tensors: readonly string[]
  readonly #source: string

  /** @throws Error that says what is wrong with the text, in one line. */
  constructor(text: string) {
    this.text = text
    refuseExponents(text)
    const { Environment: Made, serialize } = celLibrary()
    const limits = { maxAstNodes: MAX_NODES, maxDepth: MAX_DEPTH }
    const { ast } = translate(() => new Made({ unlistedVariablesAreDyn: true, limits }).parse(text))
    const names: string[] = []
    rewrite(ast, { names, isInLoop: false })
    this.tensors = names
    this.#source = serialize(ast)
  }

  /**
   * Compiles the condition.
   *
   * @param types - of the elements of each tensor; absent where a type is not known, and then any goes.
   * @throws Error that says, in one line, which types do not fit or that the result is no bool.
   */
  compile(types: ReadonlyMap<string, ElementType>): CompiledCondition {
    const environment = openEnvironment()
    for (const [i, name] of this.tensors.entries()) {
      environment.registerVariable(variable(i), `list<${types.get(name) ?? 'dyn'}>`)
    }
    const program = translate(() => environment.parse(this.#source), this.tensors)
    const { valid, type, error } = program.check()
    if (!valid) throw new Error(inWords(error, this.tensors))
    if (type !== 'bool' && type !== 'dyn') {
      throw new Error(`its value is of the type ${type}, want bool`)
    }
    return new CompiledCondition(program, this.tensors, types)
  }
}

/** A text between quotes, which may have anything in it, or a number with an exponent, which the library does not read. */
const EXPONENTS = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?<![\w.])(\d+(?:\.\d+)?[eE][+-]?\d+)/gs

function refuseExponents(text: string): void {
  for (const [, found] of text.matchAll(EXPONENTS)) {
    if (found !== undefined)
      throw new Error(`got the number ${found}, want one without an exponent`)
  }
}

/** A condition that is ready to be evaluated. */
export class CompiledCondition {
  /** Names of the tensors that it reads. */
  readonly tensors: readonly string[]
  readonly #program: ParseResult
  readonly #types: ReadonlyMap<string, ElementType>

  constructor(
    program: ParseResult,
    tensors: readonly string[],
    types: ReadonlyMap<string, ElementType>,
  ) {
    this.#program = program
    this.tensors = tensors
    this.#types = types
  }

  /**
   * Evaluates the condition.
   *
   * @throws Error that says, in one line, why it has no value: an absent tensor, element or parameter, NaN, a division by zero, a value
   *   of another type.
   */
  evaluate(o: {
    readonly tensors: ReadonlyMap<string, Elements>
    readonly parameters: ReadonlyMap<string, ParameterValue>
  }): boolean {
    const context: Record<string, unknown> = { parameters: o.parameters }
    for (const [i, name] of this.tensors.entries()) {
      const elements = o.tensors.get(name)
      if (elements === undefined) throw new Error(`the tensor "${name}" is absent`)
      const odd = elements.findIndex((one) => Number.isNaN(one))
      if (odd !== -1) throw new Error(`tensors["${name}"][${odd}] is NaN`)
      context[variable(i)] = this.#types.get(name) === 'uint' ? elements.map(toUnsigned) : elements
    }
    const value: unknown = translate(() => this.#program(context), this.tensors)
    if (typeof value !== 'boolean') throw new Error('its value is no bool')
    return value
  }
}

function toUnsigned(value: Elements[number]): unknown {
  const open = { unlistedVariablesAreDyn: true }
  unsigned ??= new (celLibrary().Environment)(open).parse('uint(value)')
  return unsigned({ value: BigInt(value) })
}

/** The library does not give out its class of unsigned integers. */
let unsigned: ParseResult | undefined

interface Rewriting {
  readonly names: string[]
  readonly isInLoop: boolean
}

/**
 * Replaces `tensors["NAME"]` by a variable, which has a type, and `/` by a function that refuses zero, and checks what a condition may
 * have.
 */
function rewrite(node: ASTNode, o: Rewriting): void {
  if (node.op === '[]' && isName(node.args[0], 'tensors')) return rewriteTensor(node, o)
  if (isName(node, 'tensors')) throw new Error('want tensors["NAME"]: the tensors have no list')
  const called = calledName(node)
  if (REFUSED.has(called)) throw new Error(`'${called}' is not offered in conditions`)
  const isLoop = LOOPS.has(called)
  if (isLoop && o.isInLoop) throw new Error(`'${called}' stands within another macro`)
  for (const child of childrenOf(node)) rewrite(child, { ...o, isInLoop: o.isInLoop || isLoop })
  if (node.op === '/') become(node, 'call', ['divide', [...node.args]])
}

function rewriteTensor(node: Extract<ASTNode, { op: '[]' }>, { names }: Rewriting): void {
  const [, key] = node.args
  if (key.op !== 'value' || typeof key.args !== 'string') {
    throw new Error('tensors[…] takes the name of a tensor in quotes')
  }
  become(node, 'id', variable(indexOf(names, key.args)))
}

function isName(node: ASTNode, name: string): boolean {
  return node.op === 'id' && node.args === name
}

function calledName(node: ASTNode): string {
  return node.op === 'call' || node.op === 'rcall' ? node.args[0] : ''
}

/** Returns the place of a name in a list, to which it is added if it is new. */
function indexOf(names: string[], name: string): number {
  const known = names.indexOf(name)
  return known === -1 ? names.push(name) - 1 : known
}

function childrenOf({ args }: ASTNode): readonly ASTNode[] {
  const found: ASTNode[] = []
  const add = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(add)
    else if (isNode(value)) found.push(value)
  }
  add(args)
  return found
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value
}

/** Changes a node in place: the tree is ours, and is printed next. */
function become(node: ASTNode, op: 'id' | 'call', args: unknown): void {
  Object.assign(node, { op, args })
}

function openEnvironment(): Environment {
  const { Environment: Made } = celLibrary()
  const limits = { maxAstNodes: 2 * MAX_NODES, maxDepth: 2 * MAX_DEPTH }
  const environment = new Made({ limits })
  environment.registerVariable('parameters', 'map<string, dyn>')
  environment.registerFunction('divide(int, int): int', (a: bigint, b: bigint) => a / nonZero(b))
  environment.registerFunction(
    'divide(double, double): double',
    (a: number, b: number) => a / nonZero(b),
  )
  environment.registerFunction('divide(uint, uint): uint', (a: Unsigned, b: Unsigned) =>
    toUnsigned(a.valueOf() / nonZero(b.valueOf())),
  )
  return environment
}

/** The library's class of unsigned integers, as far as it is used here. */
interface Unsigned {
  valueOf(): bigint
}

function nonZero<T extends number | bigint>(divisor: T): T {
  if (Number(divisor) === 0) throw new Error('division by zero')
  return divisor
}

/** @throws Error with the library's text in one line. */
function translate<T>(act: () => T, tensors: readonly string[] = []): T {
  try {
    return act()
  } catch (error) {
    throw new Error(inWords(error, tensors), { cause: error })
  }
}

/** Returns the first line of a text of the library, in the words of the condition. */
function inWords(error: unknown, tensors: readonly string[]): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return (
    line
      .replaceAll(/\btensor_(\d+)\b/g, (name, i: string) => {
        const tensor = tensors[Number(i)]
        return tensor === undefined ? name : `tensors["${tensor}"]`
      })
      // The library says so of an empty list.
      .replace(/ >= size undefined$/, ' >= size 0')
      .replace(/^No such key: (?=index out of bounds)/, '')
      .replace(/^No such key: (.*)$/, 'the parameter "$1" is absent')
  )
}
