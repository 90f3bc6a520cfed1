import type { StepSpan } from '../api/step-span.ts'

/** Says in short phrases what was done around an execution, or why there was none. The list is empty for a plain execution. */
export function describeSpan(span: StepSpan): readonly string[] {
  const { passed, why = '', isFallback, model } = span
  return [
    ...(passed === 'skipped' ? [why === '' ? 'skipped' : `skipped: ${why}`] : []),
    ...(passed === 'defaulted' ? ['answered with its default'] : []),
    ...(isFallback === true ? [`fallback ${model}`] : []),
    ...describeRepeats(span),
    ...describeAttempts(span),
  ]
}

function describeRepeats({ counts = {}, itemReason }: StepSpan): readonly string[] {
  const { items, itemCalls = 0, failedItems = 0, iterations } = counts
  const reason = itemReason === undefined ? '' : `: ${itemReason}`
  const failed = failedItems === 0 ? '' : `, ${failedItems} failed${reason}`
  return [
    ...(items === undefined
      ? []
      : [`${plural(items, 'item')} in ${plural(itemCalls, 'call')}${failed}`]),
    ...(iterations === undefined ? [] : [plural(iterations, 'iteration')]),
  ]
}

function describeAttempts({ counts = {} }: StepSpan): readonly string[] {
  const { retried = 0, retryRefused = 0, hedged = 0, hedgeWon = 0 } = counts
  const won = hedgeWon === 0 ? '' : `, ${hedgeWon} won`
  return [
    ...(retried === 0 ? [] : [plural(retried, 'retry', 'retries')]),
    ...(retryRefused === 0 ? [] : ['no budget for a further retry']),
    ...(hedged === 0 ? [] : [`${plural(hedged, 'hedge')}${won}`]),
  ]
}

function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}
