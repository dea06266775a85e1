import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pylatexenc.latex2text import LatexNodes2Text

from regard.documents.formats.latex import read
from regard.documents.segment import SegmentTranslation
from tests.documents.capitals import in_capitals

PIECES = st.sampled_from(
    r"\emph{;\textbf{;{\bf ;};{;\footnote{;\section{;\section[A b]{;\href{u}{;\ref{a};\cite{b};\foo ;\bar{x}".split(";")
    + r"\begin{center};\end{center};\begin{tabular}{l};\end{tabular};\begin{verbatim};\end{verbatim};\item ".split(";")
    + r"\item[A b];$x_1$;\(y\);\[ z \];$;\\;&;%;~;--;``;'';\'e;\"{o};\ss ;\ldots{};\&;\%;\LaTeX;words;a;Zwei".split(";")
    + ["% c\n", ". ", " ", "\n", "\n\n", r"\verb|x_{y|", r"\label{l}", r"\begin{equation}", r"\end{equation}"]
)


@given(st.lists(PIECES, max_size=25))
def test_any_markup_comes_out_with_its_braces(pieces: list[str]) -> None:
    text = "".join(pieces)
    document = read(text.encode())
    assert document.write({}) == text.encode()
    capitals = in_capitals(document).decode()
    for some in (r"\\[^A-Za-z]|([{}])", rf"(\\(?:{NAMES})\b)", r"(\$)"):
        before, after = (list(filter(None, re.findall(some, bare(one)))) for one in (text, capitals))
        assert after == before, capitals


def bare(text: str) -> str:
    """Without comments, and without what accents and signs are written with."""
    text = re.sub(r"(?<!\\)%.*", "", text)
    return re.sub(r"""\\['"](?:\{[eo]\}|[eo])|\\(?:ldots|ss|LaTeX)(?:\{\}|\s)?""", " ", text).replace("{}", " ")


NAMES = "emph|textbf|footnote|section|href|ref|cite|foo|bar|begin|end|item|label"


def plain(text: str) -> str:
    """What the independent reader makes of it, in capitals."""
    return "".join(LatexNodes2Text(math_mode="verbatim").latex_to_text(text).upper().split())


DOCUMENT = r"""\documentclass{article}
\newcommand{\important}[1]{\textbf{#1}}
\title{A \emph{short} title}
\begin{document}
\begin{abstract}
We show that \textbf{bold \emph{and emphasised}} text--even ``quoted''---works. % a comment
It costs \$5 \& 3\% of $x^2 + y$, see Figure~\ref{fig:a} and \cite{smith}.
\end{abstract}
\section[Short name]{Caf\'e na\"{\i}ve\label{s}}
First paragraph\footnote{A \textit{note} here.} goes on with \foo{} and \module{httplib2}.
\begin{equation}
E = mc^2
\end{equation}
where \(E\) is {\bf energy} and \verb|x_y|.
\begin{itemize}
\item One thing
\item[Two words] another \texttt{a\_b}\\
New line
\end{itemize}
\begin{figure}[ht]\includegraphics[width=3cm]{cat.png}\caption{A cat, \textsl{linked}.}\end{figure}
\begin{tabular}{lc}\hline
Name & Value \\ \textbf{Cat} & small \\ \end{tabular}
\begin{verbatim}
do not \touch{this}
\end{verbatim}
\noindent {\it Last} words.
\end{document}
not this
"""


def test_a_document_in_capitals_reads_as_it_did() -> None:
    document = read(DOCUMENT.encode())
    assert [one.text for one in document.segments] == [
        "A short title",
        "We show that bold and emphasised text–even “quoted”—works. "
        "It costs $5 & 3% of $x^2 + y$, see Figure\xa01 and .",
        "Short name", "Café naïve", "First paragraph goes on with and httplib2.",
        "A note here.",
        "where \\(E\\) is energy and x_y.",
        "One thing", "Two words", "another a_b", "New line", "A cat, linked.", "Name",
        "Value", "Cat", "small", "Last words.",
    ]  # fmt: skip
    capitals = in_capitals(document).decode()
    assert plain(capitals) == plain(DOCUMENT)
    for kept in (
        "do not \\touch{this}",
        "\\textbf{#1}",
        "\\texttt{a\\_b}",
        "$x^2 + y$",
        "\\label{s}",
        "not this",
        "% a comm",
    ):
        assert kept in capitals
    assert "\\textbf{BOLD \\emph{AND EMPHASISED}} TEXT--EVEN ``QUOTED''---WORKS." in capitals
    assert "FIRST PARAGRAPH\\footnote{A \\textit{NOTE} HERE.} GOES ON WITH \\foo{} AND \\module{httplib2}." in capitals


def test_signs_of_a_translation_are_escaped_and_commands_end_before_letters() -> None:
    document = read(rb"One \foo two \bar, three")
    places = tuple((0, 0) for _ in document.segments[0].tags)
    written = document.write({0: SegmentTranslation("50 % & {x}_1 ~ C:\\d “q” – #", places)}).decode()
    assert written == r"\foo \bar{}50 \% \& \{x\}\_1 \textasciitilde{} C:\textbackslash{}d ``q'' -- \#"
    assert plain(written).endswith("50%&{X}_1~C:\\D“Q”–#")


def test_an_old_encoding_is_kept() -> None:
    text = "\\usepackage[latin1]{inputenc}\\begin{document}Größe\\end{document}".encode("latin-1")
    assert in_capitals(read(text)).decode("latin-1").endswith("GRÖßE\\end{document}")


@pytest.mark.one_of(5, minutes=0.02)
@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000 + "a", "\\emph{" * 50_000 + "a", "\\foo{" * 50_000 + "a", "$ " * 100_000, "$a\n\n" * 20_000,
        "\\(" * 50_000 + "a",
        "\\begin{verbatim}" * 20_000, "\\[ $$ " * 30_000, "\\item[" * 50_000, "\\verb|" * 30_000,
        "a\\footnote{" * 20_000 + "b",
        "words \\emph{more} % c\n" * 10_000, "}" * 100_000, "\\title{" * 30_000 + "\\begin{document}",
        "%" * 200_000, "\\foo[" * 50_000,
    ],
    ids=range(16),
)  # fmt: skip
def test_hostile_texts_take_bounded_time(text: str) -> None:
    begin = time.process_time()
    document = read(text.encode())
    assert document.write({}) == text.encode()
    in_capitals(document)
    assert time.process_time() - begin < 10
