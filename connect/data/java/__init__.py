"""What Java writes and reads as text, to the letter: numbers, dates, and Connect's values."""
