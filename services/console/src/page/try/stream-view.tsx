import { formatMs } from '../rates.ts'
import { AnswerView } from './answer-view.tsx'
import type { StreamedAnswers } from './streamed-answers.ts'
import { Waterfall } from './waterfall.tsx'

interface StreamViewProps {
  readonly stream: StreamedAnswers
  readonly isOver: boolean
  readonly elapsedMs: number
}

/** Shows the responses of a decoupled model: their texts joined, and the last responses one by one. */
export function StreamView({ stream, isOver, elapsedMs }: StreamViewProps) {
  const { count, answers, texts, failure, reason, recorded } = stream
  const responses = `${count.toLocaleString('en')} ${count === 1 ? 'response' : 'responses'}`
  return (
    <>
      <p role="status" class="quiet">
        {isOver
          ? `Version ${answers.at(-1)?.modelVersion ?? '–'} answered with ${responses}`
          : responses}
        {isOver ? ` in ${formatMs(elapsedMs)}.` : ' so far'}
      </p>
      {failure !== '' && (
        <p class="trouble" role="alert">
          {failure} <span class="mono">{reason}</span>
        </p>
      )}
      {[...texts].map(([output, text]) => (
        <pre key={output} tabIndex={0} aria-label={`All of ${output}`}>
          {text}
        </pre>
      ))}
      {answers.map((answer, i) => {
        const number = count - answers.length + i + 1
        return (
          <details key={number} open={number === count}>
            <summary>Response {number.toLocaleString('en')}</summary>
            <AnswerView answer={answer} />
          </details>
        )
      })}
      <Waterfall recorded={recorded} />
    </>
  )
}
