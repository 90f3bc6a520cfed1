import type { ModelConfig } from '@tutti/model-config'
import { formatShape, fromConfigDatatype, shapeMatches } from '@tutti/tensor'
import type { ConditionFault } from './condition-fault.ts'

/**
 * Finds outputs that are declared with another type than the input of their name. Both are one name for clients, and the tensor is
 * compared with the input only. Triton does not look at it.
 */
export function* findSharedNames({
  input,
  output,
}: Pick<ModelConfig, 'input' | 'output'>): Generator<ConditionFault> {
  for (const [index, declared] of output.entries()) {
    const own = input.find(({ name }) => name === declared.name)
    if (own === undefined || declared.data_type === 'TYPE_INVALID') continue
    const isSame = declared.data_type === own.data_type
    if (isSame && shapeMatches(declared.dims, own.dims)) continue
    const reason = isSame ? 'ShapeMismatch' : 'DatatypeMismatch'
    const want = `${show(own)}, which the input of that name is`
    yield { reason, at: { output: index, field: 'from' }, got: show(declared), want }
  }
}

function show({
  data_type: dataType,
  dims,
}: Pick<ModelConfig['output'][number], 'data_type' | 'dims'>): string {
  return `${fromConfigDatatype(dataType) ?? dataType}${formatShape(dims)}`
}
