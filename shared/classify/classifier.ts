import type { Catalog, Source } from '../catalog.ts';
import type { Letter } from '../letter.ts';
import { LetterBody } from './body.ts';
import type { Classification, Dialect } from './evidence.ts';
import { classify, DIALECTS, judgeAgain } from './index.ts';
import { compileKnowledge, type Knowledge, needsMessage } from './knowledge.ts';
import { Sight } from './sight.ts';

/** Classifies letters by the catalog: rules and schemas of each source are made ready once. */
export class Classifier {
  readonly #catalog: Catalog;
  readonly #dialects: readonly Dialect[];
  readonly #knowledge = new WeakMap<Source, Knowledge>();

  /** Throws where a rule or schema is not valid; a catalog that was parsed has only valid ones. */
  constructor(catalog: Catalog, dialects: readonly Dialect[] = DIALECTS) {
    this.#catalog = catalog;
    this.#dialects = dialects;
    for (const source of catalog.sources) this.knowledgeOf(source);
  }

  /** What the catalog teaches about a source, also about one that has left it. */
  knowledgeOf(source: Source): Knowledge {
    let knowledge = this.#knowledge.get(source);
    if (knowledge === undefined) {
      knowledge = compileKnowledge(source, this.#catalog.rules);
      this.#knowledge.set(source, knowledge);
    }
    return knowledge;
  }

  /** Reads and judges a letter. `sections` gives its body, and is asked at most once. Never throws. */
  classify(source: Source, letter: Letter, sections: () => readonly Buffer[]): Classification {
    const knowledge = this.knowledgeOf(source);
    const sight = new Sight(letter, new LetterBody(letter.body, sections), knowledge.consumedBy);
    return classify(sight, this.#dialects, knowledge);
  }

  /** Whether a recorded letter can only be judged again with its message at hand. */
  needsMessage(
    source: Source,
    record: { readonly letter: Letter; readonly classification: Classification; readonly cut: readonly string[] },
  ): boolean {
    const { letter, classification, cut } = record;
    const sight = new Sight(letter, new LetterBody(letter.body));
    return needsMessage(this.knowledgeOf(source), sight, { found: classification, cut });
  }

  /** Judges a recorded letter again by the evidence that was found then. Never throws. */
  judgeAgain(source: Source, letter: Letter, before: Classification): Classification {
    const knowledge = this.knowledgeOf(source);
    return judgeAgain(new Sight(letter, new LetterBody(letter.body), knowledge.consumedBy), before, knowledge);
  }
}
